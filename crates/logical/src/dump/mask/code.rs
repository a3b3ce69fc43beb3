//! Bytes of a character set as letters: the same text is the same mask, whatever it is stored in.

use std::sync::LazyLock;

/// Character sets of one byte below 128 as ASCII has them, with what the servers take the bytes from 128 on for;
/// U+FFFD and what is missing at the end are nothing. MariaDB and MySQL of all versions agree; the test
/// `dumps_mask_all_character_sets_alike` asks them.
const ONE_BYTE: [(&str, &str); 24] = [
    ("ascii", ""),
    (
        "latin1",
        "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8D}Ž\u{8F}\u{90}‘’“”•–—˜™š›œ\u{9D}žŸ\u{A0}¡¢£¤¥¦§¨©ª«¬\u{AD}®¯°±²³´µ¶·¸¹º»¼½¾¿À\
         ÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ",
    ),
    (
        "latin2",
        "\u{80}\u{81}\u{82}\u{83}\u{84}\u{85}\u{86}\u{87}\u{88}\u{89}\u{8A}\u{8B}\u{8C}\u{8D}\u{8E}\u{8F}\
         \u{90}\u{91}\u{92}\u{93}\u{94}\u{95}\u{96}\u{97}\u{98}\u{99}\u{9A}\u{9B}\u{9C}\u{9D}\u{9E}\u{9F}\
         \u{A0}Ą˘Ł¤ĽŚ§¨ŠŞŤŹ\u{AD}ŽŻ°ą˛ł´ľśˇ¸šşťź˝žżŔÁÂĂÄĹĆÇČÉĘËĚÍÎĎĐŃŇÓÔŐÖ×ŘŮÚŰÜÝŢßŕáâăäĺćçčéęëěíîďđńňóôőö÷řů\
         úűüýţ˙",
    ),
    (
        "latin5",
        "\u{80}\u{81}\u{82}\u{83}\u{84}\u{85}\u{86}\u{87}\u{88}\u{89}\u{8A}\u{8B}\u{8C}\u{8D}\u{8E}\u{8F}\
         \u{90}\u{91}\u{92}\u{93}\u{94}\u{95}\u{96}\u{97}\u{98}\u{99}\u{9A}\u{9B}\u{9C}\u{9D}\u{9E}\u{9F}\
         \u{A0}¡¢£¤¥¦§¨©ª«¬\u{AD}®¯°±²³´µ¶·¸¹º»¼½¾¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏĞÑÒÓÔÕÖ×ØÙÚÛÜİŞßàáâãäåæçèéêëìíîïğñòóôõö÷øù\
         úûüışÿ",
    ),
    (
        "latin7",
        "\u{80}\u{81}\u{82}\u{83}\u{84}\u{85}\u{86}\u{87}\u{88}\u{89}\u{8A}\u{8B}\u{8C}\u{8D}\u{8E}\u{8F}\
         \u{90}\u{91}\u{92}\u{93}\u{94}\u{95}\u{96}\u{97}\u{98}\u{99}\u{9A}\u{9B}\u{9C}\u{9D}\u{9E}\u{9F}\
         \u{A0}”¢£¤„¦§Ø©Ŗ«¬\u{AD}®Æ°±²³“µ¶·ø¹ŗ»¼½¾æĄĮĀĆÄÅĘĒČÉŹĖĢĶĪĻŠŃŅÓŌÕÖ×ŲŁŚŪÜŻŽßąįāćäåęēčéźėģķīļšńņóōõö÷ųł\
         śūüżž’",
    ),
    (
        "cp1250",
        "€\u{FFFD}‚\u{FFFD}„…†‡\u{FFFD}‰Š‹ŚŤŽŹ\u{FFFD}‘’“”•–—\u{FFFD}™š›śťžź\u{A0}ˇ˘Ł¤Ą¦§¨©Ş«¬\u{AD}®Ż°±˛ł´µ¶\
         ·¸ąş»Ľ˝ľżŔÁÂĂÄĹĆÇČÉĘËĚÍÎĎĐŃŇÓÔŐÖ×ŘŮÚŰÜÝŢßŕáâăäĺćçčéęëěíîďđńňóôőö÷řůúűüýţ˙",
    ),
    (
        "cp1251",
        "ЂЃ‚ѓ„…†‡€‰Љ‹ЊЌЋЏђ‘’“”•–—\u{FFFD}™љ›њќћџ\u{A0}ЎўЈ¤Ґ¦§Ё©Є«¬\u{AD}®Ї°±Ііґµ¶·ё№є»јЅѕїАБВГДЕЖЗИЙКЛМНОПРСТ\
         УФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмнопрстуфхцчшщъыьэюя",
    ),
    (
        "cp1256",
        "€\u{67E}‚ƒ„…†‡ˆ‰\u{FFFD}‹Œ\u{686}\u{698}\u{FFFD}\u{6AF}‘’“”•–—\u{FFFD}™\u{FFFD}›œ\u{200C}\u{200D}\
         \u{FFFD}\u{A0}،¢£¤¥¦§¨©\u{FFFD}«¬\u{AD}®¯°±²³´µ¶·¸¹\u{61B}»¼½¾\u{61F}\u{FFFD}\u{621}\u{622}\u{623}\
         \u{624}\u{625}\u{626}\u{627}\u{628}\u{629}\u{62A}\u{62B}\u{62C}\u{62D}\u{62E}\u{62F}\u{630}\u{631}\
         \u{632}\u{633}\u{634}\u{635}\u{636}×\u{637}\u{638}\u{639}\u{63A}\u{640}\u{641}\u{642}\u{643}à\u{644}\
         â\u{645}\u{646}\u{647}\u{648}çèéêë\u{649}\u{64A}îï\u{64B}\u{64C}\u{64D}\u{64E}ô\u{64F}\u{650}÷\
         \u{651}ù\u{652}ûü\u{200E}\u{200F}",
    ),
    (
        "cp1257",
        "€\u{FFFD}‚\u{FFFD}„…†‡\u{FFFD}‰\u{FFFD}‹\u{FFFD}¨ˇ¸\u{FFFD}‘’“”•–—\u{FFFD}™\u{FFFD}›\u{FFFD}¯˛\
         \u{FFFD}\u{A0}\u{FFFD}¢£¤\u{FFFD}¦§Ø©Ŗ«¬\u{AD}®Æ°±²³´µ¶·ø¹ŗ»¼½¾æĄĮĀĆÄÅĘĒČÉŹĖĢĶĪĻŠŃŅÓŌÕÖ×ŲŁŚŪÜŻŽßąįāć\
         äåęēčéźėģķīļšńņóōõö÷ųłśūüżž˙",
    ),
    (
        "cp850",
        "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀ÓßÔÒ\
         õÕµþÞÚÛÙýÝ¯´\u{AD}±‗¾¶§÷¸°¨·¹³²■\u{A0}",
    ),
    (
        "cp852",
        "ÇüéâäůćçłëŐőîŹÄĆÉĹĺôöĽľŚśÖÜŤťŁ×čáíóúĄąŽžĘę¬źČş«»░▒▓│┤ÁÂĚŞ╣║╗╝Żż┐└┴┬├─┼Ăă╚╔╩╦╠═╬¤đĐĎËďŇÍÎě┘┌█▄ŢŮ▀ÓßÔŃ\
         ńňŠšŔÚŕŰýÝţ´\u{AD}˝˛ˇ˘§÷¸°¨˙űŘř■\u{A0}",
    ),
    (
        "cp866",
        "АБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмноп░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀рсту\
         фхцчшщъыьэюяЁёЄєЇїЎў°∙·√ⁿ²■\u{A0}",
    ),
    (
        "koi8r",
        "─│┌┐└┘├┤┬┴┼▀▄█▌▐░▒▓⌠■∙√≈≤≥\u{A0}⌡°²·÷═║╒ё╓╔╕╖╗╘╙╚╛╜╝╞╟╠╡Ё╢╣╤╥╦╧╨╩╪╫╬©юабцдефгхийклмнопярстужвьызшэщч\
         ъЮАБЦДЕФГХИЙКЛМНОПЯРСТУЖВЬЫЗШЭЩЧЪ",
    ),
    (
        "koi8u",
        "─│┌┐└┘├┤┬┴┼▀▄█▌▐░▒▓⌠■•√≈≤≥\u{A0}⌡°²·÷═║╒ёє╔ії╗╘╙╚╛ґ╝╞╟╠╡ЁЄ╣ІЇ╦╧╨╩╪Ґ╬©юабцдефгхийклмнопярстужвьызшэщч\
         ъЮАБЦДЕФГХИЙКЛМНОПЯРСТУЖВЬЫЗШЭЩЧЪ",
    ),
    (
        "greek",
        "\u{80}\u{81}\u{82}\u{83}\u{84}\u{85}\u{86}\u{87}\u{88}\u{89}\u{8A}\u{8B}\u{8C}\u{8D}\u{8E}\u{8F}\
         \u{90}\u{91}\u{92}\u{93}\u{94}\u{95}\u{96}\u{97}\u{98}\u{99}\u{9A}\u{9B}\u{9C}\u{9D}\u{9E}\u{9F}\
         \u{A0}ʽʼ£\u{FFFD}\u{FFFD}¦§¨©\u{FFFD}«¬\u{AD}\u{FFFD}―°±²³΄΅Ά·ΈΉΊ»Ό½ΎΏΐΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡ\u{FFFD}ΣΤΥΦ\
         ΧΨΩΪΫάέήίΰαβγδεζηθικλμνξοπρςστυφχψωϊϋόύώ",
    ),
    (
        "hebrew",
        "\u{80}\u{81}\u{82}\u{83}\u{84}\u{85}\u{86}\u{87}\u{88}\u{89}\u{8A}\u{8B}\u{8C}\u{8D}\u{8E}\u{8F}\
         \u{90}\u{91}\u{92}\u{93}\u{94}\u{95}\u{96}\u{97}\u{98}\u{99}\u{9A}\u{9B}\u{9C}\u{9D}\u{9E}\u{9F}\
         \u{A0}\u{FFFD}¢£¤¥¦§¨©×«¬\u{AD}®‾°±²³´µ¶·¸¹÷»¼½¾\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\
         \u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\
         \u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\
         \u{FFFD}\u{FFFD}‗\u{5D0}\u{5D1}\u{5D2}\u{5D3}\u{5D4}\u{5D5}\u{5D6}\u{5D7}\u{5D8}\u{5D9}\u{5DA}\
         \u{5DB}\u{5DC}\u{5DD}\u{5DE}\u{5DF}\u{5E0}\u{5E1}\u{5E2}\u{5E3}\u{5E4}\u{5E5}\u{5E6}\u{5E7}\u{5E8}\
         \u{5E9}\u{5EA}\u{FFFD}\u{FFFD}\u{200E}\u{200F}",
    ),
    (
        "armscii8",
        "\u{80}\u{81}\u{82}\u{83}\u{84}\u{85}\u{86}\u{87}\u{88}\u{89}\u{8A}\u{8B}\u{8C}\u{8D}\u{8E}\u{8F}\
         \u{90}\u{91}\u{92}\u{93}\u{94}\u{95}\u{96}\u{97}\u{98}\u{99}\u{9A}\u{9B}\u{9C}\u{9D}\u{9E}\u{9F}\
         \u{A0}❁§։\u{29}\u{28}»«—\u{2E}՝\u{2C}\u{2D}՟…՜՛՞ԱաԲբԳգԴդԵեԶզԷէԸըԹթԺժԻիԼլԽխԾծԿկՀհՁձՂղՃճՄմՅյՆնՇշՈոՉչՊպ\
         ՋջՌռՍսՎվՏտՐրՑցՒւՓփՔքՕօՖֆ’\u{27}",
    ),
    (
        "geostd8",
        "€\u{FFFD}‚\u{FFFD}„…†‡\u{FFFD}‰\u{FFFD}‹\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}‘’“”•–—\u{FFFD}\
         \u{FFFD}\u{FFFD}›\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{A0}¡¢£¤¥¦§¨©ª«¬\u{AD}®¯°±²³´µ¶·¸¹º»¼½¾¿აბგდევზჱთ\
         იკლმნჲოპჟრსტჳუფქღყშჩცძწჭხჴჯჰჵ\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\
         \u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\
         \u{FFFD}\u{FFFD}\u{FFFD}№",
    ),
    (
        "macce",
        "ÄĀāÉĄÖÜáąČäčĆćéŹźĎíďĒēĖóėôöõúĚěü†°Ę£§•¶ß®©™ę¨≠ģĮįĪ≤≥īĶ∂∑łĻļĽľĹĺŅņŃ¬√ńŇ∆«»…\u{A0}ňŐÕőŌ–—“”‘’÷◊ōŔŕŘ‹›ř\
         ŖŗŠ‚„šŚśÁŤťÍŽžŪÓÔūŮÚůŰűŲųÝýķŻŁżĢˇ",
    ),
    (
        "macroman",
        "ÄÅÇÉÑÖÜáàâäãåçéèêëíìîïñóòôöõúùûü†°¢£§•¶ß®©™´¨≠ÆØ∞±≤≥¥µ∂∑∏π∫ªºΩæø¿¡¬√ƒ≈∆«»…\u{A0}ÀÃÕŒœ–—“”‘’÷◊ÿŸ⁄€‹›ﬁ\
         ﬂ‡·‚„‰ÂÊÁËÈÍÎÏÌÓÔ\u{F8FF}ÒÚÛÙıˆ˜¯˘˙˚¸˝˛ˇ",
    ),
    (
        "keybcs2",
        "ČüéďäĎŤčěĚĹÍľĺÄÁÉžŽôöÓůÚýÖÜŠĽÝŘťáíóúňŇŮÔšřŕŔ¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπ\
         ΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{A0}",
    ),
    (
        "tis620",
        "\u{80}\u{81}\u{82}\u{83}\u{84}\u{85}\u{86}\u{87}\u{88}\u{89}\u{8A}\u{8B}\u{8C}\u{8D}\u{8E}\u{8F}\
         \u{90}\u{91}\u{92}\u{93}\u{94}\u{95}\u{96}\u{97}\u{98}\u{99}\u{9A}\u{9B}\u{9C}\u{9D}\u{9E}\u{9F}\
         \u{FFFD}กขฃคฅฆงจฉชซฌญฎฏฐฑฒณดตถทธนบปผฝพฟภมยรฤลฦวศษสหฬอฮฯะ\u{E31}าำ\u{E34}\u{E35}\u{E36}\u{E37}\u{E38}\
         \u{E39}\u{E3A}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}฿เแโใไๅๆ\u{E47}\u{E48}\u{E49}\u{E4A}\u{E4B}\u{E4C}\
         \u{E4D}\u{E4E}๏๐๑๒๓๔๕๖๗๘๙๚๛",
    ),
    (
        "dec8",
        "\u{80}\u{81}\u{82}\u{83}\u{84}\u{85}\u{86}\u{87}\u{88}\u{89}\u{8A}\u{8B}\u{8C}\u{8D}\u{8E}\u{8F}\
         \u{90}\u{91}\u{92}\u{93}\u{94}\u{95}\u{96}\u{97}\u{98}\u{99}\u{9A}\u{9B}\u{9C}\u{9D}\u{9E}\u{9F}\
         \u{A0}¡¢£\u{FFFD}¥\u{FFFD}§¤©ª«\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}°±²³\u{FFFD}µ¶·\u{FFFD}¹º»¼½\u{FFFD}¿\
         ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏ\u{FFFD}ÑÒÓÔÕÖŒØÙÚÛÜŸ\u{FFFD}ßàáâãäåæçèéêëìíîï\u{FFFD}ñòóôõöœøùúûüÿ",
    ),
    (
        "hp8",
        "\u{80}\u{81}\u{82}\u{83}\u{84}\u{85}\u{86}\u{87}\u{88}\u{89}\u{8A}\u{8B}\u{8C}\u{8D}\u{8E}\u{8F}\
         \u{90}\u{91}\u{92}\u{93}\u{94}\u{95}\u{96}\u{97}\u{98}\u{99}\u{9A}\u{9B}\u{9C}\u{9D}\u{9E}\u{9F}\
         \u{A0}ÀÂÈÊËÎÏ´ˋˆ¨˜ÙÛ₤¯Ýý°ÇçÑñ¡¿¤£¥§ƒ¢âêôûáéóúàèòùäëöüÅîØÆåíøæÄìÖÜÉïßÔÁÃãÐðÍÌÓÒÕõŠšÚŸÿÞþ·µ¶¾—¼½ªº«■»±",
    ),
];

/// What is no letter.
const NOTHING: char = '\u{FFFD}';

/// The letters of all bytes of each of these character sets.
static LETTERS: LazyLock<Vec<[char; 256]>> = LazyLock::new(|| {
    let letters = |upper: &str| {
        let mut all = [NOTHING; 256];
        (0..128u8).for_each(|low| all[usize::from(low)] = char::from(low));
        for (place, letter) in all[128..].iter_mut().zip(upper.chars()) {
            // One more byte for what ASCII has would be another value's mask.
            *place = if letter.is_ascii() { NOTHING } else { letter };
        }
        all
    };
    ONE_BYTE.iter().map(|(_, upper)| letters(upper)).collect()
});

/// How letters are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    Utf8,
    /// A byte each, by the place of the character set above.
    OneByte(usize),
    /// Two bytes or four.
    Utf16 {
        is_little: bool,
    },
    Utf32,
    /// In other ways, which are not known here.
    Unknown,
}

/// A letter, or bytes that are none.
pub(super) enum Unit<'b> {
    Letter(char),
    Bytes(&'b [u8]),
}

impl Code {
    /// Returns how a character set writes letters.
    pub(super) fn of(charset: &str) -> Self {
        let one_byte = || ONE_BYTE.iter().position(|(name, _)| *name == charset);
        match charset {
            "utf8" | "utf8mb3" | "utf8mb4" => Self::Utf8,
            "ucs2" | "utf16" => Self::Utf16 { is_little: false },
            "utf16le" => Self::Utf16 { is_little: true },
            "utf32" => Self::Utf32,
            _ => one_byte().map_or(Self::Unknown, Self::OneByte),
        }
    }

    /// Hands on letter by letter, and returns the bytes at the end that a letter may begin with.
    pub(super) fn units<'b>(self, bytes: &'b [u8], to: &mut dyn FnMut(Unit<'b>)) -> &'b [u8] {
        match self {
            Self::Utf8 => utf8(bytes, to),
            Self::OneByte(place) => {
                for byte in bytes.chunks(1) {
                    to(match LETTERS[place][usize::from(byte[0])] {
                        NOTHING => Unit::Bytes(byte),
                        letter => Unit::Letter(letter),
                    });
                }
                &[]
            }
            Self::Utf16 { is_little } => utf16(bytes, is_little, to),
            Self::Utf32 => {
                let letters = bytes.chunks_exact(4);
                let rest = letters.remainder();
                for four in letters {
                    let number = four.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
                    to(char::from_u32(number).map_or(Unit::Bytes(four), Unit::Letter));
                }
                rest
            }
            Self::Unknown => {
                to(Unit::Bytes(bytes));
                &[]
            }
        }
    }
}

fn utf8<'b>(bytes: &'b [u8], to: &mut dyn FnMut(Unit<'b>)) -> &'b [u8] {
    let mut rest = bytes;
    loop {
        let (good, after, bad) = match std::str::from_utf8(rest) {
            Ok(text) => (text, &rest[..0], None),
            Err(error) => {
                let (good, after) = rest.split_at(error.valid_up_to());
                let good = std::str::from_utf8(good).unwrap_or_default();
                (good, after, error.error_len())
            }
        };
        good.chars().for_each(|letter| to(Unit::Letter(letter)));
        let Some(bad) = bad else { return after };
        to(Unit::Bytes(&after[..bad]));
        rest = &after[bad..];
    }
}

fn utf16<'b>(bytes: &'b [u8], is_little: bool, to: &mut dyn FnMut(Unit<'b>)) -> &'b [u8] {
    let half = |at: usize| -> Option<u16> {
        let two: [u8; 2] = bytes.get(at..at + 2)?.try_into().ok()?;
        Some(match is_little {
            true => u16::from_le_bytes(two),
            false => u16::from_be_bytes(two),
        })
    };
    let mut at = 0;
    while let Some(first) = half(at) {
        let is_high = (0xD800..0xDC00).contains(&first);
        let second = half(at + 2).filter(|_| is_high);
        if is_high && second.is_none() {
            break;
        }
        let both = [Some(first), second].into_iter().flatten();
        let unit = match char::decode_utf16(both).next() {
            Some(Ok(letter)) => Unit::Letter(letter),
            _ => Unit::Bytes(&bytes[at..at + 2]),
        };
        at += match unit {
            Unit::Letter(letter) => 2 * letter.len_utf16(),
            Unit::Bytes(_) => 2,
        };
        to(unit);
    }
    &bytes[at..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(code: Code, bytes: &[u8]) -> (String, usize) {
        let (mut text, mut others) = (String::new(), 0);
        let rest = code.units(bytes, &mut |unit| match unit {
            Unit::Letter(letter) => text.push(letter),
            Unit::Bytes(some) => others += some.len(),
        });
        (text, others + rest.len())
    }

    #[test]
    fn bytes_of_character_sets_are_letters() {
        for (charset, bytes, text, others) in [
            ("latin1", &b"\xC4\x80\x81"[..], "Ä€\u{81}", 0),
            ("koi8r", b"\xCD\xC9\xD2", "мир", 0),
            ("ascii", b"a\xC4", "a", 1),
            ("armscii8", b"\xA5(", "(", 1),
            ("utf8mb3", b"a\xC3\xA4\xFF\xC3", "aä", 2),
            ("ucs2", b"\0a\xD8\0\0b\0", "ab", 3),
            ("utf16le", b"\x3D\xD8\0\xDEa\0\0\xDC", "😀a", 2),
            ("utf32", b"\0\x01\xF6\0\0\0\xD8\0\0", "😀", 5),
            ("sjis", b"a", "", 1),
            ("swe7", b"a", "", 1),
        ] {
            assert_eq!(
                read(Code::of(charset), bytes),
                (text.to_owned(), others),
                "{charset}"
            );
        }
    }

    proptest! {
        #[test]
        fn every_letter_is_read(text in any::<String>()) {
            let wide = |one: u16| one.to_be_bytes();
            let utf16: Vec<u8> = text.encode_utf16().flat_map(wide).collect();
            let utf32: Vec<u8> = text.chars().flat_map(|one| u32::from(one).to_be_bytes()).collect();
            let all = [("utf8mb4", text.as_bytes()), ("utf16", &utf16), ("utf32", &utf32)];
            for (charset, bytes) in all {
                prop_assert_eq!(read(Code::of(charset), bytes), (text.clone(), 0));
            }
        }

        #[test]
        fn no_byte_is_left_out(bytes in any::<Vec<u8>>()) {
            for charset in ["utf8mb4", "utf16", "utf16le", "utf32", "latin1", "tis620", "gbk"] {
                let mut count = 0;
                let code = Code::of(charset);
                let rest = code.units(&bytes, &mut |unit| count += match (unit, code) {
                    (Unit::Bytes(some), _) => some.len(),
                    (Unit::Letter(letter), Code::Utf8) => letter.len_utf8(),
                    (Unit::Letter(letter), Code::Utf16 { .. }) => 2 * letter.len_utf16(),
                    (Unit::Letter(_), Code::Utf32) => 4,
                    (Unit::Letter(_), _) => 1,
                });
                prop_assert_eq!(count + rest.len(), bytes.len());
            }
        }
    }
}
